package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/cutonce/cutonce/audit"
	"github.com/cutonce/cutonce/internal/config"
	"github.com/cutonce/cutonce/store"
)

func auditCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "audit", Short: "Export the audit trail, and verify it anywhere with the public key",
		Args: exactly(0, "which command? export, verify or key"),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return misused(cmd, err.Error()) })
	cmd.AddCommand(auditExport(), auditVerify(), auditKey())
	return cmd
}

func auditKey() *cobra.Command {
	return &cobra.Command{
		Use: "key", Short: "Print the public key that seals are verified with",
		Long: "Prints the public key of CUTONCE_SEAL_KEY_FILE or, without it, of the key that is made from the deployment's secret. Keep it\n" +
			"where those who can write to the database cannot change it.",
		Args: exactly(0, "key takes no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			settings, err := config.Load(os.Environ())
			if err != nil {
				return err
			}
			if settings.SealKeyFile == "" && settings.Secret == "" {
				return config.Problems{"CUTONCE_SEAL_KEY_FILE or CUTONCE_SECRET (or _FILE) is required: whose key?"}
			}
			if settings.SealKeyFile == "" && len(settings.Secret) < config.MinSecret {
				return config.Problems{fmt.Sprintf("CUTONCE_SECRET is too short to be anybody's: at least %d characters", config.MinSecret)}
			}
			key, source, err := sealKey(settings)
			if err != nil {
				return err
			}
			// The key alone goes to standard output: what is kept of it is what --key takes.
			fmt.Fprintf(cmd.ErrOrStderr(), "key id %s, %s\n", key.ID(), source)
			_, err = fmt.Fprintln(cmd.OutOrStdout(), audit.WritePublic(key.Public()))
			return err
		},
	}
}

// openDatabase opens the configured database for one command.
func openDatabase(ctx context.Context) (*store.Store, error) {
	settings, err := config.Load(os.Environ())
	if err != nil {
		return nil, err
	}
	if settings.DatabaseURL == "" {
		return nil, config.Problems{"CUTONCE_DATABASE_URL (or _FILE) is required: which Postgres?"}
	}
	return store.Open(ctx, store.Config{URL: string(settings.DatabaseURL), Pooler: store.Pooler(settings.DatabasePooler), MaxConns: 2})
}

func auditExport() *cobra.Command {
	var tenant, since, out string
	cmd := &cobra.Command{
		Use: "export", Short: "Write the audit trail as one JSON object a line",
		Long: "Reads CUTONCE_DATABASE_URL and writes every audit event, seal and tombstone as it is at one moment. It changes nothing and\n" +
			"blocks nobody. Verify the file anywhere with cutonce audit verify.",
		Args: exactly(0, "export takes no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			filter := store.ExportFilter{Tenant: tenant}
			if since != "" {
				at, err := time.Parse(time.RFC3339, since)
				if err != nil {
					return misused(cmd, "--since: a time such as 2026-01-02T15:04:05Z")
				}
				filter.Since = at
			}
			s, err := openDatabase(cmd.Context())
			if err != nil {
				return err
			}
			defer s.Close()
			return exportTo(cmd.Context(), s, filter, out, cmd.OutOrStdout())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&tenant, "tenant", "", "only this tenant's changes")
	flags.StringVar(&since, "since", "", "only changes on which something has happened since this time (such as 2026-01-02T15:04:05Z), each of them whole")
	flags.StringVar(&out, "out", "", "the file to write instead of standard output")
	return cmd
}

func exportTo(ctx context.Context, s *store.Store, filter store.ExportFilter, path string, stdout io.Writer) (err error) {
	to := stdout
	if path != "" {
		file, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, file.Close()) }()
		to = file
	}
	buffered := bufio.NewWriterSize(to, 1<<20)
	return errors.Join(s.Export(ctx, filter, buffered), buffered.Flush())
}

type auditVerifyFlags struct {
	keys     []string
	witness  string
	database bool
	part     bool
}

func auditVerify() *cobra.Command {
	var f auditVerifyFlags
	cmd := &cobra.Command{
		Use: "verify FILE --key KEY", Short: "Say whether an exported trail was tampered with, and where",
		Long: "Checks every hash, seal and signature of an export, without the database, and names what was edited, deleted, put in, reordered,\n" +
			"cut off or appended. FILE may be - for standard input. --key is required: keep the key elsewhere than the trail.\n\n" +
			"Exit codes: 0 nothing is wrong; 1 something is, and all of it was listed; 2 wrong usage, or the file is not readable.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 && !f.database || len(args) != 0 && f.database {
				return misused(cmd, "which file? or --database for the configured database")
			}
			report, err := f.verify(cmd.Context(), cmd.InOrStdin(), args)
			if err != nil {
				return misused(cmd, err.Error())
			}
			return printReport(cmd.OutOrStdout(), report)
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&f.keys, "key", nil, "a public key that is trusted, as cutonce audit key prints it, or a file that holds it; may be repeated")
	flags.StringVar(&f.witness, "witness", "", "the file of CUTONCE_SEAL_WITNESS: what it has seen must be in the trail")
	flags.BoolVar(&f.database, "database", false, "verify the database of CUTONCE_DATABASE_URL as it is now")
	flags.BoolVar(&f.part, "part", false, "accept a file that holds a part of the trail, as export makes it with --tenant or --since")
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return misused(cmd, err.Error()) })
	return cmd
}

func (f auditVerifyFlags) verify(ctx context.Context, stdin io.Reader, args []string) (audit.Report, error) {
	v := audit.Verifier{Keys: audit.Keys{}, Name: store.PublicName, Part: f.part, Now: time.Now()}
	if len(f.keys) == 0 {
		return audit.Report{}, errors.New("--key is required: which public key is trusted? cutonce audit key prints it")
	}
	for _, text := range f.keys {
		if file, err := os.ReadFile(text); err == nil {
			text = string(file)
		}
		public, err := audit.ReadPublic(text)
		if err != nil {
			return audit.Report{}, fmt.Errorf("--key: %w", err)
		}
		v.Keys[audit.KeyID(public)] = public
	}
	if f.witness != "" {
		witness, err := audit.ReadWitness(f.witness)
		if err == nil && witness == nil {
			err = errors.New("there is no such file")
		}
		if err != nil {
			return audit.Report{}, fmt.Errorf("--witness: %w", err)
		}
		v.Witness = witness
	}
	if f.database {
		return verifyDatabase(ctx, v)
	}
	if args[0] == "-" {
		return v.Verify(bufio.NewReaderSize(stdin, 1<<20))
	}
	file, err := os.Open(args[0])
	if err != nil {
		return audit.Report{}, err
	}
	defer file.Close()
	return v.Verify(bufio.NewReaderSize(file, 1<<20))
}

// verifyDatabase verifies an export as it is written.
func verifyDatabase(ctx context.Context, v audit.Verifier) (audit.Report, error) {
	s, err := openDatabase(ctx)
	if err != nil {
		return audit.Report{}, err
	}
	defer s.Close()
	from, to := io.Pipe()
	go func() { to.CloseWithError(s.Export(ctx, store.ExportFilter{}, to)) }()
	defer from.Close()
	return v.Verify(from)
}

func printReport(to io.Writer, r audit.Report) error {
	for _, f := range r.Findings {
		fmt.Fprintf(to, "BROKEN %s\n", f)
	}
	fmt.Fprintf(to, "%d changes with %d events, %d control events, %d seals, %d retired changes\n", r.Previews, r.Events, r.ControlEvents, r.Seals, r.Retired)
	if r.Part() {
		fmt.Fprintf(to, "the file holds a part of the trail only (tenant %q): that it leaves nothing else out is not shown; %d sealed ends were not looked at\n",
			r.Tenant, r.Hidden)
	}
	if r.Restores > 0 {
		fmt.Fprintf(to, "%d restores from a backup were declared: what happened between the backup and the restore is not in the file\n", r.Restores)
	}
	if r.Last != nil {
		fmt.Fprintf(to, "last seal: %d of %s, by the key %s\n", r.Last.Number, r.Last.At.UTC().Format(time.RFC3339), r.Last.KeyID)
	}
	fmt.Fprintf(to, "%d events not sealed yet, which nobody has signed; %d of them are older than the last seal\n", r.Unsealed, r.Overdue)
	for _, p := range r.UnsealedNamed {
		fmt.Fprintf(to, "  %s, event %d\n", p.Preview, p.Seq)
	}
	if !r.OK() {
		fmt.Fprintf(to, "BROKEN: %d findings\n", len(r.Findings))
		return exitCode(1)
	}
	fmt.Fprintln(to, "OK: nothing was tampered with")
	return nil
}
