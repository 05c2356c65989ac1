package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/cutonce/cutonce/internal/config"
	"github.com/cutonce/cutonce/internal/pglocal"
	"github.com/cutonce/cutonce/migrations"
	"github.com/cutonce/cutonce/store"
)

func migrateCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "migrate",
		Short: "Bring the database's schema up to this version",
		Long: "Brings the schema of CUTONCE_DATABASE_URL up to this version and ends. Migrations only add, so the version that\n" +
			"is running may go on running. serve does the same at its start unless CUTONCE_MIGRATE is false; use this command\n" +
			"where the service's own role may not change tables.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			settings, err := config.Load(os.Environ())
			if err != nil {
				return err
			}
			if settings.DatabaseURL == "" {
				return config.Problems{"CUTONCE_DATABASE_URL (or _FILE) is required: which Postgres?"}
			}
			if err := bringUp(cmd.Context(), settings); err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), "the schema is up to date")
			return err
		},
	}
}

// migrateOurs migrates a database that is empty or already ours.
func migrateOurs(ctx context.Context, url string) error {
	if err := refuseForeign(ctx, url); err != nil {
		return err
	}
	return store.Migrate(ctx, url)
}

// refuseForeign refuses a database that holds somebody else's tables and none of ours: that is more likely a mistake in the URL
// than a wish. It only reads.
func refuseForeign(ctx context.Context, url string) error {
	known, found := store.OurTables(), false
	err := pglocal.RefuseForeign(ctx, url, func(_, table string) bool {
		found = found || table == migrations.VersionTable
		return slices.Contains(known, table)
	})
	if foreign := (*pglocal.ForeignTablesError)(nil); errors.As(err, &foreign) && found {
		return nil // a newer version of ours may have added tables that this one does not know
	}
	return err
}
