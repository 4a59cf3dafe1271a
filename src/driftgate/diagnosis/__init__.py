"""Why a link breaks: suspected causes tested by experiment."""
