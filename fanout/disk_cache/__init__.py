"""Files in which a process keeps results for later processes.

Any of them may be deleted.
"""
