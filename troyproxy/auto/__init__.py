"""The auto engine: scores a pool of candidates and orders it. Pure: time, chance and measurements are arguments."""
