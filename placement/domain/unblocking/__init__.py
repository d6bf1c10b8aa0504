"""What would start a waiting job: steps away from the machine as it is, each confirmed by the gate."""
