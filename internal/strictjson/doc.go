// Package strictjson reads JSON that people and programs write, and refuses what encoding/json would accept and change: an
// unknown field, a key that appears twice, bytes that are not UTF-8, a second value behind the first. Each refusal names the
// field.
package strictjson
