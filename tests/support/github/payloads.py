"""What GitHub says about users, comments, pull requests and the rest, with every key that its description demands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from typing import Any

OWNER, NAME = "acme", "models"
REPOSITORY = f"{OWNER}/{NAME}"
REPOSITORY_ID = 1296269
SITE = "https://github.com"
API = "https://api.github.com"

Json = dict[str, Any]

_USER_URLS = ("followers", "following", "gists", "starred", "subscriptions", "organizations", "repos", "events")
_REPOSITORY_URLS = (
    *("archive", "assignees", "blobs", "branches", "collaborators", "comments", "commits", "compare", "contents"),
    *("contributors", "deployments", "downloads", "events", "forks", "git_commits", "git_refs", "git_tags", "hooks"),
    *("issue_comment", "issue_events", "issues", "keys", "labels", "languages", "merges", "milestones"),
    *("notifications", "pulls", "releases", "stargazers", "statuses", "subscribers", "subscription", "tags", "teams"),
    "trees",
)


def moment(epoch: float) -> str:
    """A moment as GitHub writes it."""
    return datetime.fromtimestamp(epoch, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def user(login: str, kind: str = "User") -> Json:
    """A simple user."""
    number = sum(login.encode())
    return {
        "login": login,
        "id": number,
        "node_id": f"U_{number}",
        "avatar_url": f"https://avatars.githubusercontent.com/u/{number}",
        "gravatar_id": "",
        "url": f"{API}/users/{login}",
        "html_url": f"{SITE}/{login}",
        **{f"{name}_url": f"{API}/users/{login}/{name}" for name in _USER_URLS},
        "received_events_url": f"{API}/users/{login}/received_events",
        "type": kind,
        "site_admin": False,
    }


def public_user(login: str, kind: str, epoch: float) -> Json:
    """The answer to `GET /user`."""
    empty = dict.fromkeys(("name", "company", "location", "email", "hireable", "bio"))
    counts = dict.fromkeys(("public_repos", "public_gists", "followers", "following"), 0)
    return {
        **user(login, kind),
        **empty,
        **counts,
        "user_view_type": "public",
        "blog": None,
        "created_at": moment(epoch),
        "updated_at": moment(epoch),
    }


def repository(full_name: str, *, fork: bool) -> Json:
    """A repository."""
    owner, name = full_name.split("/")
    api, site = f"{API}/repos/{full_name}", f"{SITE}/{full_name}"
    counts = ("forks", "forks_count", "open_issues", "open_issues_count", "size", "stargazers_count", "watchers")
    flags = ("has_downloads", "has_issues", "has_projects", "has_wiki", "has_pages", "archived", "disabled", "private")
    return {
        "id": REPOSITORY_ID if full_name == REPOSITORY else REPOSITORY_ID + sum(full_name.encode()),
        "node_id": "R_1",
        "name": name,
        "full_name": full_name,
        "owner": user(owner),
        "html_url": site,
        "description": None,
        "fork": fork,
        "url": api,
        **{f"{key}_url": f"{api}/{key}" for key in _REPOSITORY_URLS},
        "clone_url": f"{site}.git",
        "git_url": f"git:github.com/{full_name}.git",
        "ssh_url": f"git@github.com:{full_name}.git",
        "svn_url": site,
        "mirror_url": None,
        "homepage": None,
        "language": None,
        "license": None,
        "default_branch": "main",
        **dict.fromkeys(counts, 0),
        "watchers_count": 0,
        **dict.fromkeys(flags, False),
        "pushed_at": moment(0),
        "created_at": moment(0),
        "updated_at": moment(0),
    }


def comment(number: int, issue: int, author: Mapping[str, str], body: str, *, created: float, updated: float) -> Json:
    """A comment on an issue or a pull request."""
    return {
        "id": number,
        "node_id": f"IC_{number}",
        "url": f"{API}/repos/{REPOSITORY}/issues/comments/{number}",
        "html_url": f"{SITE}/{REPOSITORY}/pull/{issue}#issuecomment-{number}",
        "issue_url": f"{API}/repos/{REPOSITORY}/issues/{issue}",
        "body": body,
        "user": user(author["login"], author["type"]),
        "created_at": moment(created),
        "updated_at": moment(updated),
        "author_association": "NONE",
        "performed_via_github_app": None,
    }


def _branch(repository_name: str, ref: str, sha: str) -> Json:
    owner = repository_name.split("/")[0]
    return {
        "label": f"{owner}:{ref}",
        "ref": ref,
        "sha": sha,
        "user": user(owner),
        "repo": repository(repository_name, fork=repository_name != REPOSITORY),
    }


def pull(number: int, *, head_repository: str, branch: str, sha: str, state: str) -> Json:
    """A pull request as lists show it."""
    api, site = f"{API}/repos/{REPOSITORY}/pulls/{number}", f"{SITE}/{REPOSITORY}/pull/{number}"
    issue = f"{API}/repos/{REPOSITORY}/issues/{number}"
    links = {
        "self": api,
        "html": site,
        "issue": issue,
        "comments": f"{issue}/comments",
        "review_comments": f"{api}/comments",
        "review_comment": f"{api}/comments{{/number}}",
        "commits": f"{api}/commits",
        "statuses": f"{API}/repos/{REPOSITORY}/statuses/{sha}",
    }
    return {
        "id": number,
        "node_id": f"PR_{number}",
        "number": number,
        "state": state,
        "locked": False,
        "title": "A network",
        "body": None,
        "user": user(head_repository.split("/")[0]),
        "labels": [],
        "assignee": None,
        "milestone": None,
        "created_at": moment(0),
        "updated_at": moment(0),
        "closed_at": None,
        "merged_at": None,
        "merge_commit_sha": None,
        "author_association": "CONTRIBUTOR",
        "auto_merge": None,
        "url": api,
        "html_url": site,
        "diff_url": f"{site}.diff",
        "patch_url": f"{site}.patch",
        "issue_url": issue,
        "commits_url": f"{api}/commits",
        "review_comments_url": f"{api}/comments",
        "review_comment_url": f"{api}/comments{{/number}}",
        "comments_url": f"{issue}/comments",
        "statuses_url": f"{API}/repos/{REPOSITORY}/statuses/{sha}",
        "head": _branch(head_repository, branch, sha),
        "base": _branch(REPOSITORY, "main", "b" * 40),
        "_links": {key: {"href": href} for key, href in links.items()},
    }


def whole_pull(simple: Json) -> Json:
    """A pull request as it shows itself."""
    counts = ("additions", "changed_files", "comments", "commits", "deletions", "review_comments")
    return {
        **simple,
        **dict.fromkeys(counts, 1),
        "mergeable": True,
        "mergeable_state": "clean",
        "merged": False,
        "merged_by": None,
        "maintainer_can_modify": False,
    }


def artifact(number: int, name: str, size_bytes: int) -> Json:
    """An artifact of a run."""
    api = f"{API}/repos/{REPOSITORY}/actions/artifacts/{number}"
    return {
        "id": number,
        "node_id": f"A_{number}",
        "name": name,
        "size_in_bytes": size_bytes,
        "url": api,
        "archive_download_url": f"{api}/zip",
        "expired": False,
        "created_at": moment(0),
        "updated_at": moment(0),
        "expires_at": moment(86400 * 90),
    }


def job(number: int, run: int, name: str, status: str, labels: Sequence[str] = ("ubuntu-24.04",)) -> Json:
    """A job of a run."""
    api, site = f"{API}/repos/{REPOSITORY}/actions", f"{SITE}/{REPOSITORY}/actions/runs/{run}/job/{number}"
    has_runner = status in ("in_progress", "completed")
    return {
        "id": number,
        "run_id": run,
        "run_url": f"{api}/runs/{run}",
        "run_attempt": 1,
        "node_id": f"CR_{number}",
        "head_sha": "1" * 40,
        "url": f"{api}/jobs/{number}",
        "html_url": site,
        "status": status,
        "conclusion": "success" if status == "completed" else None,
        "created_at": moment(0),
        "started_at": moment(0),
        "completed_at": moment(60) if status == "completed" else None,
        "name": name,
        "steps": [],
        "check_run_url": f"{API}/repos/{REPOSITORY}/check-runs/{number}",
        "labels": list(labels),
        "runner_id": 1 if has_runner else None,
        "runner_name": "runner" if has_runner else None,
        "runner_group_id": 1 if has_runner else None,
        "runner_group_name": "Default" if has_runner else None,
        "workflow_name": "CI",
        "head_branch": "main",
    }


def refusal(status: int, words: str, *details: Json) -> Json:
    """The body of a refusal."""
    body: Json = {"message": words, "documentation_url": "https://docs.github.com/rest", "status": str(status)}
    return {**body, "errors": list(details)} if details else body
