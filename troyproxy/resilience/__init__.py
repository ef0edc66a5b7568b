"""Pure resilience core: error classes, retry hints, cooldowns, breakers, and the fold of their events.

No clock, no chance, no I/O: instants (``at``, ``now``, ``until``) are unix seconds and arguments, durations end in
``_s``, randomness is an ``rng``. Import each name from the module that owns it.
"""
