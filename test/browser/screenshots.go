package main

import "context"

func (s *stage) photograph(ctx context.Context, dir string) error { return nil }
