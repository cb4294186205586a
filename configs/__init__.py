"""YAML configurations, one folder per command, and their loader."""
