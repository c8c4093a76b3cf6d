// Starts Scalar over this server's OpenAPI document. Nothing is taken from the address but the place behind `#`.
'use strict';

const start = async () => {
  const document = await (await fetch('/openapi.json')).json();
  // Requests go to the origin that the page was opened at: the Content-Security-Policy allows no other.
  document.servers = [{ url: location.origin }];
  const { flows } = document.components.securitySchemes.oauth2;
  flows.clientCredentials.tokenUrl = new URL('/oauth/token', location).href;
  // A seller's consent comes back to an address of the application; this page has none.
  delete flows.authorizationCode;

  Scalar.createApiReference('#reference', {
    content: document,
    authentication: { preferredSecurityScheme: 'bearer' },
    withDefaultFonts: false,
    telemetry: false,
    agent: { disabled: true },
    mcp: { disabled: true },
    hideClientButton: true,
    showDeveloperTools: 'never',
    documentDownloadType: 'none',
    hideDarkModeToggle: true,
    hideModels: true,
    persistAuth: false,
    defaultOpenAllTags: true,
    // The site links to these anchors (`operations` in src/site.rs).
    generateTagSlug: (tag) => tag.name,
    generateOperationSlug: (operation) => operation.operationId,
    generateWebhookSlug: (webhook) => webhook.name,
  });
};

start();
