"""Worktrees of bays: made, adopted, filled, judged, mounted and removed, never trusting what is in them."""

from devbay.worktrees.create import Created, adopt_worktree, create_worktree
from devbay.worktrees.dirty import OwnWork, commits_of_own, in_progress, own_work, unheld_commits
from devbay.worktrees.include import copy_includes, include_patterns, read_includes
from devbay.worktrees.mounts import git_env, git_mounts
from devbay.worktrees.place import worktree_path
from devbay.worktrees.remove import delete_branch, lock_reason, prune, remove_worktree
from devbay.worktrees.repository import Repository
from devbay.worktrees.state import TreeState, untracked_files, worktree_state
from devbay.worktrees.submodules import submodules
from devbay.worktrees.trash import sweep, to_trash

__all__ = [
    "Created",
    "OwnWork",
    "Repository",
    "TreeState",
    "adopt_worktree",
    "commits_of_own",
    "copy_includes",
    "create_worktree",
    "delete_branch",
    "git_env",
    "git_mounts",
    "in_progress",
    "include_patterns",
    "lock_reason",
    "own_work",
    "prune",
    "read_includes",
    "remove_worktree",
    "submodules",
    "sweep",
    "to_trash",
    "unheld_commits",
    "untracked_files",
    "worktree_path",
    "worktree_state",
]
