// Package handlers says what runs.
package handlers
