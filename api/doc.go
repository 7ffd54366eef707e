// Package api serves what people do with a namespace over HTTP: [Server] puts an [admin.Admin] behind the paths of
// docs/api.md, with the shapes of admin in JSON and the sentences of the onbeat command in errors. The OpenAPI document at
// /openapi.json comes from the same Go types that answer, so there is one truth.
//
// A Server is an [http.Handler]. The caller gives it a listener, timeouts and TLS.
package api
