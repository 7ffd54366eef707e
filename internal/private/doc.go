// Package private opens files and folders that only this user, or the system, could have written. A program that takes
// commands, data or passwords from a file obeys every user who may write to it.
//
// Where the system does not say which user owns a file, as on Windows, only links are refused.
package private
