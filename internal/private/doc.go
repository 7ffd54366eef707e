// Package private opens files and folders that nobody but this user, and the system's own, could have written. A program
// that takes commands, data or passwords from a file takes orders from everyone who may write it.
//
// Where the system does not say who owns a file, as on Windows, only links are refused.
package private
