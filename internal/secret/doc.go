// Package secret keeps secrets out of texts. A [Set] knows secret texts, and finds them in every spelling. Paths say which values
// of a payload are secret: [Mask]. [URL], [Text] and [Value] leave out what looks like a login, where no secret is known.
package secret
