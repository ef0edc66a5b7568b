"""What a request used and what it cost, read from the dialects in which upstreams report it. Pure."""
