// Swagger UI on our own OpenAPI document. No validator badge: nothing is sent anywhere.
window.ui = SwaggerUIBundle({
  url: document.querySelector("#swagger-ui").dataset.document,
  dom_id: "#swagger-ui",
  deepLinking: true,
  validatorUrl: null,
  defaultModelsExpandDepth: 0,
  tryItOutEnabled: true,
});
