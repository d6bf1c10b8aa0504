"""Settings of the whole site, in one file; every choice comes from a TIDEGATE_ variable."""

from __future__ import annotations

import os
import socket
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

from placement.domain.containing import containers
from placement.runner import ladder
from scheduler_site import environ, naming, queues

REPOSITORY = Path(__file__).resolve().parent.parent

# Where everything that must outlive a restart is kept.
DATA = environ.directory("TIDEGATE_DATA", REPOSITORY / "var")
DATA.mkdir(mode=0o700, parents=True, exist_ok=True)
RUNS = environ.directory("TIDEGATE_RUNS", DATA / "runs")
SIMULATED_DIR = environ.directory("TIDEGATE_SIMULATED_DIR", DATA / "simulated")

NODE = environ.node_name("TIDEGATE_NODE", naming.kept(DATA) or socket.gethostname())
SIMULATE = environ.text("TIDEGATE_SIMULATE")
# Working directories of jobs must lie below one of these.
ALLOWED_ROOTS = [
    Path(root) for root in environ.words("TIDEGATE_ALLOWED_ROOTS", ":") or [str(Path.home()), "/tmp", str(DATA)]
]
# Names of variables of the worker's own environment that every job is given.
JOB_ENVIRONMENT = environ.words("TIDEGATE_JOB_ENVIRONMENT")
# Where jobs of this node reach the service, to ask for more while they run; `./tidegate up` knows its own address.
URL = environ.text("TIDEGATE_URL")
# Whether this node's MPS server, which an admin runs, is told to keep clients within their caps.
MPS_LIMITS = environ.boolean("TIDEGATE_MPS_LIMITS")
# How jobs are kept in their main memory: the best way that works here, one by name, or off.
RAM_LIMIT = environ.one_of("TIDEGATE_RAM_LIMIT", ("auto", "off", *ladder.KINDS))
# Which engines may run jobs in containers: off, every one that answers here (auto), or one by name.
CONTAINERS = environ.one_of("TIDEGATE_CONTAINERS", containers.CHOICES)
# Folders that every container has besides its working directory.
CONTAINER_MOUNTS = [Path(folder) for folder in environ.words("TIDEGATE_CONTAINER_MOUNTS", ":")]
# Overrides of scheduler knobs by name, for tests that cannot wait as long as production does.
KNOB_OVERRIDES = environ.json_object("TIDEGATE_TEST_KNOBS")

DEBUG = environ.boolean("TIDEGATE_DEBUG")
SECRET_KEY = environ.secret_key("TIDEGATE_SECRET_KEY", DATA / "secret.key")
ALLOWED_HOSTS = environ.words("TIDEGATE_ALLOWED_HOSTS") or environ.host_names(environ.text("TIDEGATE_BIND"))

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django_htmx",
    "scheduler_site.apps.SiteConfig",
    "calibration.apps.CalibrationConfig",
    "placement.apps.PlacementConfig",
]

MIDDLEWARE = [
    "scheduler_site.security.behind_the_proxy",
    "django.middleware.security.SecurityMiddleware",
    "scheduler_site.security.content_security_policy",
    "scheduler_site.security.kept_by_nobody",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "scheduler_site.slashes.no_slash_too_many",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "scheduler_site.visitors.Visitors",
    "scheduler_site.security.in_utf8",
    "scheduler_site.security.no_nul",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
]

ROOT_URLCONF = "scheduler_site.urls"
WSGI_APPLICATION = "scheduler_site.wsgi.application"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [REPOSITORY / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]

DATABASES = {"default": environ.database("TIDEGATE_DATABASE_URL", DATA / "tidegate.sqlite3")}

AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator"},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.NumericPasswordValidator"},
]
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = "login"

LANGUAGE_CODE = "en"
USE_I18N = False
USE_TZ = True
TIME_ZONE = environ.time_zone()

STATIC_URL = "static/"
STATICFILES_DIRS = [REPOSITORY / "static"]
# Files are served from where they lie, so there is no step to forget after an update.
WHITENOISE_USE_FINDERS = True
WHITENOISE_MAX_AGE = 60

HTTPS = environ.boolean("TIDEGATE_HTTPS")
SESSION_COOKIE_SECURE = HTTPS
CSRF_COOKIE_SECURE = HTTPS
SECURE_SSL_REDIRECT = HTTPS
# The container's or proxy's health check asks without TLS, and so do jobs on the service's own machine.
SECURE_REDIRECT_EXEMPT = [r"^healthz$", r"^api/v1/inside/"]
SECURE_HSTS_SECONDS = 30 * 86400 if HTTPS else 0
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if HTTPS else None
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
# Ports share cookies on one host: two services on one machine must not log each other's people out.
SESSION_COOKIE_NAME = "tidegate_session"
CSRF_COOKIE_NAME = "tidegate_csrf"
X_FRAME_OPTIONS = "DENY"
# Subdomains and browsers' preload lists belong to whoever owns the domain, not to this service.
SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W021"]

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"plain": {"format": "%(asctime)s %(levelname)s %(name)s: %(message)s"}},
    "filters": {"once_a_minute": {"()": "scheduler_site.quiet.OnceAMinute"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "plain", "filters": ["once_a_minute"]}},
    "root": {"handlers": ["stderr"], "level": "INFO"},
    "loggers": {"django.request": {"level": "ERROR"}},
}

CELERY_BROKER_URL = environ.text("TIDEGATE_BROKER_URL", f"safefs://{DATA}/broker")
try:
    BROKER_FOLDER = queues.folder_of(CELERY_BROKER_URL)
except ValueError as error:
    raise ImproperlyConfigured(f"TIDEGATE_BROKER_URL: {error}.") from error
BROKER_IS_FILES = BROKER_FOLDER is not None

os.umask(os.umask(0o077) | 0o027)
