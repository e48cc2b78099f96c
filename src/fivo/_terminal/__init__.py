"""What people see on a terminal: text that cannot steer it, and progress."""
