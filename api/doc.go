// Package api serves what people do with a namespace over HTTP: [Server] puts an [admin.Admin] behind the paths of
// docs/api.md, with the shapes of admin in JSON and the sentences of the onbeat command in errors. The OpenAPI document at
// /openapi.json comes from the same Go types that answer, so there is one truth.
//
// A Server is an [http.Handler]. [Server.Serve] answers on a listener, with timeouts and limits; a caller that serves the handler
// by other means brings its own.
package api
