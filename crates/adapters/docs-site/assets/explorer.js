// Starts Swagger UI over this server's document for the explorer. Nothing of it is taken from the address but the place to open.
'use strict';

const dark = matchMedia('(prefers-color-scheme: dark)');
const paint = () => document.documentElement.classList.toggle('dark-mode', dark.matches);
dark.addEventListener('change', paint);
paint();

SwaggerUIBundle({
  url: '/docs/explorer/openapi.json',
  dom_id: '#explorer',
  deepLinking: true,
  queryConfigEnabled: false,
  validatorUrl: 'none',
  displayRequestDuration: true,
  tryItOutEnabled: true,
  defaultModelsExpandDepth: 0,
  persistAuthorization: false,
});
