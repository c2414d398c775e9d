/**
 * Written by hand: why a row is as it is. docs/performance.md is written anew by every full run and takes these with it,
 * a family's own when one of its rows missed its aim, and `profile` always.
 */
export const EXPLANATIONS: Record<string, string> = {
  boot: `Most of it is loading code: bundled, the SQLite daemon needs about two and a half times as long as a bare node:http server; before, five
to six times. So it is below the aim on a machine where the bare server needs less than 190 ms, and above it while something else has the
processor. On PostgreSQL come the driver and graphile-worker, which are not bundled, and connections to open.`,

  read: `On SQLite a read takes about 1.3 times the processor time of the echo. What is left is what the echo does not do: five statements (10 %
of the samples), the check of the answer (3 %), the token's hash twice, once for the surface and once for the door (2 %), Hono in front (3 %),
the audit row and its seal, whose commits wait for the disk (up to 10 % while others use it too). The SDK, the same in both, and writing to the socket
are the largest parts. On PostgreSQL each of nine statements is a message to another process and back, and the server computes
on the same two cores; four of the nine ask for the token, which another daemon may have ended a moment ago.`,

  wait: `Measured from the sending of the note to the waiter's answer, so a durable write is in it. The limit has to be answered by the SDK twice
as well, but writes nothing. While other programs have the two cores, the p99 is the time until the process gets one again, at the limit
too: compare the p50.`,

  growth: `The statements of these calls have a primary key or an index with a bound for each table, on the small log and on the large one alike. What
grows is the depth of the indexes and the part of the pages that is not in the cache. A ratio of this size over 1 ms calls also moves by
some tenths between two runs while the machine is busy.`,

  profile: `\`npm run bench -- --only read --engine sqlite --profile <folder>\` leaves a CPU profile of the daemon. What it showed at 16 clients, and what
was done about it:

| in the profile of a read, before | part of the samples | now |
|---|---:|---|
| building and compiling the same queries (Kysely) | 11 %; garbage 9 % | 1 %, garbage 6 %: compiled once per engine, \`db/statement.ts\` |
| asking twice for the token and whom it stands for | 9 % | 2 %: on SQLite kept until one of those tables is written to, \`db/changes.ts\` |
| reading the body through a web stream | 7 % | 2 %: from the connection itself |
| hooks on every promise, because of one AsyncLocalStorage | 2 % | none: a connection is found by its request |
| AbortSignals made of two, handlers that nobody asks for | 2 % | the SDK's own signal, the one handler that is asked for |
| the era of a request decided twice | 2 % | once, when the request itself says it |

Of a durable write, three statements that read back a task made just now, three calls for random bytes and the parsing of SAVEPOINT and
RELEASE for each job were taken out. Of a wait: each waiter read the log again for the event that woke it, and hundreds were answered
in one turn of the event loop; now each is handed its event, sixteen in a turn. Of the start: some 504 files of packages were opened
one by one. The fan-out can be above its limit: events of one commit are written to a reader together, where the bare server writes each alone.`,
}
