// Package seal encrypts what Redis keeps: AES-256-GCM with a random nonce, and keys that have names.
//
// [Keys] seal with the first key and open with each, so keys are changed one after the other while instances run. A [task.Sealed] names
// its key, and opens only for the [Owner] that it was sealed for: a box that was moved to another task, or to
// another namespace, does not open. It has the secret paths of its payload in it. The package does no I/O. It hides what a payload says; it does not stop a user who may write to Redis from adding tasks that are not sealed.
package seal
