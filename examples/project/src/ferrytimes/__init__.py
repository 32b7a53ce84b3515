"""The next ferry, and the way there, from a timetable in a CSV file."""
