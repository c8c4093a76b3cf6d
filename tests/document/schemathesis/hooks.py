"""What schemathesis is told beyond the document.

It and its HTTP library name themselves where a case has no `User-Agent`, and both names are good ones: what is left out would never
be missed. An empty name is none.
"""

import schemathesis.transport.prepare
import urllib3.connection

schemathesis.transport.prepare.USER_AGENT = ""
urllib3.connection._get_default_user_agent = lambda: ""
