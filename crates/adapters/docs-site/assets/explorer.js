// Starts Swagger UI over the document of this server. Nothing of it is taken from the address but the place to open.
'use strict';

const dark = matchMedia('(prefers-color-scheme: dark)');
const paint = () => document.documentElement.classList.toggle('dark-mode', dark.matches);
dark.addEventListener('change', paint);
paint();

// The consent of another seller takes PKCE and an address of the application's own to come back to; a page here has neither. A token
// that was got elsewhere is pasted.
const without = (response) => {
  if (new URL(response.url, location.href).pathname === '/openapi.json') {
    const api = JSON.parse(response.text);
    const schemes = api.components.securitySchemes;
    delete schemes.oauth2.flows.authorizationCode;
    schemes.bearer.description += ' Paste it here.';
    response.text = JSON.stringify(api);
  }
  return response;
};

SwaggerUIBundle({
  url: '/openapi.json',
  dom_id: '#explorer',
  responseInterceptor: without,
  deepLinking: true,
  queryConfigEnabled: false,
  validatorUrl: 'none',
  displayRequestDuration: true,
  tryItOutEnabled: true,
  defaultModelsExpandDepth: 0,
  persistAuthorization: false,
});
