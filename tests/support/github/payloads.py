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

#: The tip of the branch that pull requests are for.
BASE_SHA = "b" * 40

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


def repository_id(full_name: str) -> int:
    """The number of a repository."""
    return REPOSITORY_ID if full_name == REPOSITORY else REPOSITORY_ID + sum(full_name.encode())


def repository(full_name: str, *, fork: bool) -> Json:
    """A repository."""
    owner, name = full_name.split("/")
    api, site = f"{API}/repos/{full_name}", f"{SITE}/{full_name}"
    counts = ("forks", "forks_count", "open_issues", "open_issues_count", "size", "stargazers_count", "watchers")
    flags = ("has_downloads", "has_issues", "has_projects", "has_wiki", "has_pages", "archived", "disabled", "private")
    return {
        "id": repository_id(full_name),
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
        "base": _branch(REPOSITORY, "main", BASE_SHA),
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


def commit(sha: str, parents: Sequence[str]) -> Json:
    """A commit."""
    api, site = f"{API}/repos/{REPOSITORY}", f"{SITE}/{REPOSITORY}"
    person = {"name": "A", "email": "a@example.com", "date": moment(0)}
    tree = {"sha": sha[::-1], "url": f"{api}/git/trees/{sha[::-1]}"}
    return {
        "url": f"{api}/commits/{sha}",
        "sha": sha,
        "node_id": f"C_{sha[:8]}",
        "html_url": f"{site}/commit/{sha}",
        "comments_url": f"{api}/commits/{sha}/comments",
        "commit": {
            "url": f"{api}/git/commits/{sha}",
            "author": person,
            "committer": person,
            "message": "A change",
            "comment_count": 0,
            "tree": tree,
        },
        "author": user("octocat"),
        "committer": user("octocat"),
        "parents": [{"sha": one, "url": f"{api}/commits/{one}"} for one in parents],
    }


def comparison(base: str, head: str, common: str) -> Json:
    """Two commits held against each other."""
    api, site = f"{API}/repos/{REPOSITORY}/compare/{base}...{head}", f"{SITE}/{REPOSITORY}/compare/{base}...{head}"
    return {
        "url": api,
        "html_url": site,
        "permalink_url": site,
        "diff_url": f"{site}.diff",
        "patch_url": f"{site}.patch",
        "base_commit": commit(base, ()),
        "merge_base_commit": commit(common, ()),
        "status": "diverged",
        "ahead_by": 1,
        "behind_by": 1,
        "total_commits": 1,
        "commits": [commit(head, ())],
        "files": [],
    }


def content(path: str, encoded: str, size_bytes: int) -> Json:
    """A file in the repository."""
    api, site = f"{API}/repos/{REPOSITORY}/contents/{path}", f"{SITE}/{REPOSITORY}/blob/main/{path}"
    return {
        "type": "file",
        "encoding": "base64",
        "size": size_bytes,
        "name": path.rpartition("/")[2],
        "path": path,
        "content": encoded,
        "sha": "3" * 40,
        "url": api,
        "git_url": api,
        "html_url": site,
        "download_url": site,
        "_links": {"git": api, "self": api, "html": site},
    }


def workflow_run(
    number_id: int,
    *,
    sha: str,
    number: int,
    attempt: int,
    branch: str,
    event: str,
    conclusion: str,
    head_repository: str,
    path: str,
    name: str,
) -> Json:
    """A run of a workflow that has ended."""
    api, site = f"{API}/repos/{REPOSITORY}/actions/runs/{number_id}", f"{SITE}/{REPOSITORY}/actions/runs/{number_id}"
    person = {"name": "A", "email": "a@example.com"}
    urls = ("jobs", "logs", "artifacts", "cancel", "rerun")
    return {
        "id": number_id,
        "name": name,
        "node_id": f"WFR_{number_id}",
        "check_suite_id": 1,
        "check_suite_node_id": "CS_1",
        "head_branch": branch,
        "head_sha": sha,
        "path": path,
        "run_number": number,
        "run_attempt": attempt,
        "event": event,
        "status": "completed",
        "conclusion": conclusion,
        "workflow_id": 7,
        "url": api,
        "html_url": site,
        "pull_requests": [],
        "created_at": moment(0),
        "updated_at": moment(0),
        "actor": user("octocat"),
        "triggering_actor": user("octocat"),
        "run_started_at": moment(0),
        **{f"{one}_url": f"{api}/{one}" for one in urls},
        "check_suite_url": f"{API}/repos/{REPOSITORY}/check-suites/1",
        "previous_attempt_url": None,
        "workflow_url": f"{API}/repos/{REPOSITORY}/actions/workflows/7",
        "head_commit": {
            "id": sha,
            "tree_id": sha[::-1],
            "message": "A change",
            "timestamp": moment(0),
            "author": person,
            "committer": person,
        },
        "repository": repository(REPOSITORY, fork=False),
        "head_repository": repository(head_repository, fork=head_repository != REPOSITORY),
        "head_repository_id": repository_id(head_repository),
        "display_title": "A change",
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
