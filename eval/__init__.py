"""Executors, scoring, statistics, reports and the command line."""
