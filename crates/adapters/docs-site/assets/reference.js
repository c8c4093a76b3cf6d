// Starts Scalar over this server's OpenAPI document. Nothing is taken from the address but the place behind `#`.
'use strict';

// Read while Scalar, which is long, still comes.
const openapi = fetch('/openapi.json').then((answer) => answer.json());

const start = async () => {
  const document = await openapi;
  // Requests go to the origin that the page was opened at: the Content-Security-Policy allows no other.
  document.servers = [{ url: location.origin }];
  const { flows } = document.components.securitySchemes.oauth2;
  flows.clientCredentials.tokenUrl = new URL('/oauth/token', location).href;
  // A seller's consent comes back to an address of the application; this page has none.
  delete flows.authorizationCode;

  Scalar.createApiReference('#reference', {
    content: document,
    theme: 'none',
    hideSearch: true,
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

addEventListener('DOMContentLoaded', () => start().catch(() => {
  const skeleton = document.querySelector('.skeleton');
  skeleton.className = 'alert';
  skeleton.ariaHidden = null;
  skeleton.textContent = 'The reference could not be loaded. Load the page again.';
}));
