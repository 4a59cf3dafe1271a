"""STAND-IN for the vendor's package of this name, for tests only; see support/vendor."""

from .hbm_rpc_session import HbmRpcSession

__all__ = ["HbmRpcSession"]
__version__ = "3.15.3+stand-in"
