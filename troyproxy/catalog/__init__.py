"""The shared vocabulary: frozen types of providers, models, combos and keys, and data files. Reads no files."""
