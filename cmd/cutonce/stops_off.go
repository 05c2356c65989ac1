//go:build !stops

package main

import (
	"github.com/cutonce/cutonce/approvals"
	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/preview"
)

// A release has no stops: its stores are the stores. See stops_on.go.

func stoppingPreviews(s preview.Store) preview.Store { return s }

func stoppingApprovals(s approvals.Store) approvals.Store { return s }

func stoppingCommits(s commit.Store) commit.Store { return s }
