# One image for the pages and for the node; docker-compose.yml says which is which.
FROM python:3.12-slim

RUN useradd --create-home --uid 10001 tidegate && install -d -o tidegate -m 0700 /data
WORKDIR /app
COPY requirements.lock ./
RUN pip install --no-cache-dir --disable-pip-version-check --requirement requirements.lock
COPY . .

ENV TIDEGATE_DATA=/data PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
USER tidegate
ENTRYPOINT ["python", "-m", "scheduler_site"]
CMD ["web", "--host", "0.0.0.0"]
