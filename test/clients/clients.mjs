// The clients, each behind the same few calls: list, call, refused (a call that the token's scopes do not allow), renew (another
// token, as after a step-up), close. What a call answers is {isError, body}, where body is the structured content.
import { spawn } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Client as ModernClient, InsufficientScopeError, StreamableHTTPClientTransport as ModernHTTP } from '@modelcontextprotocol/client';
import { StdioClientTransport as ModernStdio } from '@modelcontextprotocol/client/stdio';
import { Client as LegacyClient } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as LegacyHTTP } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { StdioClientTransport as LegacyStdio } from '@modelcontextprotocol/sdk/client/stdio.js';

const packages = join(dirname(fileURLToPath(import.meta.url)), 'node_modules');
const version = (name) => JSON.parse(readFileSync(join(packages, name, 'package.json'), 'utf8')).version;
const us = { name: 'cutonce-clients-test', version: '1' };
const modern = '2026-07-28', legacy = '2025-11-25';

// all lists the clients: a name, and how to open one with a token.
export function all(world) {
  const ts = `@modelcontextprotocol/client ${version('@modelcontextprotocol/client')}`;
  const sdk = `@modelcontextprotocol/sdk ${version('@modelcontextprotocol/sdk')}`;
  const auto = () => new ModernClient(us, { versionNegotiation: { mode: 'auto' } });
  const old = () => new LegacyClient(us);
  return [
    { name: `${ts}, ${modern}, HTTP`, open: (token) => overHTTP(world, token, auto(), ModernHTTP, modern) },
    { name: `${ts}, ${modern}, stdio`, open: (token) => overStdio(world, token, auto(), ModernStdio, modern) },
    { name: `${sdk}, ${legacy}, HTTP`, open: (token) => overHTTP(world, token, old(), LegacyHTTP, legacy) },
    { name: `${sdk}, ${legacy}, stdio`, open: (token) => overStdio(world, token, old(), LegacyStdio, legacy) },
    { name: `Inspector CLI ${version('@modelcontextprotocol/inspector')}, ${modern}, HTTP`, apart: true, open: async (token) => inspector(world, token) },
  ];
}

const answer = (result) => ({ isError: result.isError ?? false, body: result.structuredContent, text: result.content?.[0]?.text });

function negotiated(client, transport) {
  return client.getNegotiatedProtocolVersion?.() ?? transport.protocolVersion ?? transport._protocolVersion;
}

// overHTTP talks to the service itself. What travels is recorded: a challenge is an HTTP status and a header.
async function overHTTP(world, token, client, Transport, want) {
  let last, held = token;
  const transport = new Transport(new URL('/mcp', world.url), {
    onInsufficientScope: 'throw',
    fetch: async (url, init) => {
      const headers = new Headers(init?.headers);
      headers.set('Authorization', `Bearer ${held}`);
      const response = await fetch(url, { ...init, headers });
      last = { status: response.status, challenge: response.headers.get('www-authenticate') };
      return response;
    },
  });
  await client.connect(transport);
  const spoken = negotiated(client, transport);
  if (spoken !== want) throw new Error(`negotiated ${spoken}, want ${want}`);
  return {
    list: async () => (await client.listTools()).tools,
    call: async (name, args) => answer(await client.callTool({ name, arguments: args })),
    refused: async (name, args) => {
      const thrown = await client.callTool({ name, arguments: args }).then(() => undefined, (e) => e);
      if (!thrown) throw new Error('the call was not refused');
      const { status, challenge } = last;
      const scopes = /scope="([^"]*)"/.exec(challenge ?? '')?.[1].split(' ') ?? [];
      if (thrown instanceof InsufficientScopeError && thrown.requiredScope !== scopes.join(' ')) {
        throw new Error(`the client read the scopes ${thrown.requiredScope} out of ${challenge}`);
      }
      return { how: `HTTP ${status}, ${thrown.constructor.name}`, challenged: status === 403 && /error="insufficient_scope"/.test(challenge), scopes };
    },
    renew: async (another) => { held = another; },
    close: () => client.close(),
  };
}

// overStdio starts the bridge, which gets a URL and a file that holds the token, and nothing else.
let bridges = 0;
async function overStdio(world, token, client, Transport, want) {
  const file = join(world.dir, `token-${bridges++}`);
  writeFileSync(file, token, { mode: 0o600 });
  const transport = new Transport({
    command: world.binary, args: ['mcp', '--token-file', file], env: { CUTONCE_URL: world.url }, stderr: 'ignore',
  });
  await client.connect(transport);
  const spoken = client.getNegotiatedProtocolVersion?.();
  if (spoken !== undefined && spoken !== want) throw new Error(`negotiated ${spoken}, want ${want}`);
  return {
    list: async () => (await client.listTools()).tools,
    call: async (name, args) => answer(await client.callTool({ name, arguments: args })),
    refused: async (name, args) => {
      const { isError, body } = answer(await client.callTool({ name, arguments: args }));
      return { how: `a result with code ${body?.code}`, challenged: isError && body?.code === 'insufficient_scope', scopes: body?.data?.scopes ?? [] };
    },
    renew: async (another) => writeFileSync(file, another, { mode: 0o600 }),
    close: () => client.close(),
  };
}

// inspector starts the Inspector's command line once for every call.
function inspector(world, token) {
  let held = token;
  const home = join(world.dir, 'inspector');
  mkdirSync(home, { recursive: true });
  const program = join(packages, '.bin', 'mcp-inspector');
  const run = (...args) => new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [
      program, '--cli', `${world.url}/mcp`, '--transport', 'http', '--protocol-era', 'modern', '--header', `Authorization: Bearer ${held}`,
      '--stored-auth-only', '--format', 'json', '--quiet', ...args,
    ], { env: { PATH: process.env.PATH, HOME: home, NO_COLOR: '1' }, stdio: ['ignore', 'pipe', 'pipe'] });
    let out = '', err = '';
    child.stdout.on('data', (d) => { out += d; });
    child.stderr.on('data', (d) => { err += d; });
    child.on('error', reject);
    child.on('close', (code) => resolve({ code, out, err }));
  });
  const parsed = ({ code, out, err }) => {
    try { return JSON.parse(out).result; } catch { throw new Error(`the Inspector ended with ${code}: ${out} ${err}`); }
  };
  const call = (name, args) => run('--method', 'tools/call', '--tool-name', name, '--tool-args-json', JSON.stringify(args));
  return {
    list: async () => parsed(await run('--method', 'tools/list')).tools,
    call: async (name, args) => answer(parsed(await call(name, args))),
    refused: async (name, args) => {
      const { code, err } = await call(name, args);
      const scopes = /Insufficient scope: required \\?"([^"\\]*)/.exec(err)?.[1].split(' ') ?? [];
      return { how: `exit code ${code}, "Insufficient scope"`, challenged: code !== 0 && /Insufficient scope/.test(err), scopes };
    },
    renew: async (another) => { held = another; },
    close: async () => {},
  };
}
