"""Pure routing: names, members, strategies, what a request needs, and what must change for one member."""
