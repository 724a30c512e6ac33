"""The state machine: tasks and jobs of any kind, pools, orders, timers, events, the journal."""
