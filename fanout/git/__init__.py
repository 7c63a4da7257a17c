"""Private bare mirrors of repositories: listing, fetch, read, write, push."""
