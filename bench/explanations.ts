/**
 * Written by hand: why a row is as it is. A run takes those of the families that it measures into docs/performance.md, and `profile` always.
 */
export const EXPLANATIONS: Record<string, string> = {
  boot: `Most of it is loading code, so it follows the processor: a bare node:http server needs a third of it. Until it runs the SQLite daemon
uses about 430 ms of the processor on a busy machine; 530 before zod's messages in fifty languages and the SDK's JSON Schema checker were
left out of dist and the JSON Schemas of the tools were made only when asked for. On PostgreSQL come the driver and graphile-worker, some
100 files that are not bundled (80 to 100 ms), four connections to open and two sets of migrations to look at.`,

  read: `On SQLite a read takes 1.6 times the processor time of the echo; 1.2 to 1.3 before tasks had jobs, reviews and merges: what moves a task next is asked of
each of them at every look, which is a tenth of the busy time. What is left is what the echo does not do: three other
statements (about 50 µs a call; before, five in about 140), the check of the answer (3 %), the view of the task (3 %), the token's hash (2 %),
Hono in front (3 %), the audit row and its seal, whose commits wait for the disk. The SDK, the same in both, and writing to the socket are
the largest parts. While others use the two cores the ratio falls below the one of the processor times: the daemon touches more memory
than the echo. On PostgreSQL a read is four statements, nine before, each a message to another process and back: the driver has half of the
samples, some 230 µs a statement, and the server computes on the same two cores. One of the four asks for the token, because another
daemon may have ended it a moment ago. With any statement at all, 85 % are out of reach there.`,

  write: `A task_create on SQLite takes about 1.75 times the processor time of the echo. In the profile at 16 clients: statements 16 % (the
project, the counter, and three rows with twelve index entries: task, event, audit), the commits' wait for the disk 6 %, garbage 10 %,
checking input and answer 9 % together with the SDK's own checks, building the audit row 3 %, putting the parameters of the rows together
3 %; the rest is the SDK, Hono and the socket, as in the echo. Twelve calls share a commit, so the disk is not the limit unless others use
it. On PostgreSQL a write is eleven messages to the server, one after the other; before, sixteen. Creations in one project go one at a
time there, from the lock on the project to the end of the commit, so more clients do not make it faster.`,

  mail: `A letter is a row with five index entries beside its event and its audit row, and four statements more: who the receiver is, what the token
has sent lately, whether the sender is a run that repeats itself, whether the receiver runs and is to be told. In the profile at
30 writers the largest part is the commits' wait for the disk (a third of the busy time while others wrote to it too).`,

  wait: `Measured from the sending of the note to the waiter's answer, so a durable write is in it. The limit has to be answered by the SDK twice
as well, but writes nothing. While other programs have the two cores, the p99 is the time until the process gets one again, at the limit
too: compare the p50. On PostgreSQL it is the number of messages to the server, one after the other: eleven for the note, two or three to
read what is new and one for the waiter's token; before, sixteen, three and two. When another transaction with an older number is still open,
the log is looked at again 5 ms later, because its events would come first: that is part of the p99.`,

  growth: `The statements of these calls have a primary key or an index with a bound for each table, on the small log and on the large one alike. What
grows is the depth of the indexes and the part of the pages that is not in the cache. The event read on PostgreSQL took 1.4 times as long:
on a large table the planner believed that hardly anything follows a recent cursor, went by the index of commits through all that others
had written since (35 pages for one row where it now reads 5), and planned anew for each call. What is left of that is the planning, 0.1 ms a
call, which on the small table is done once. A ratio over 1 ms calls also moves by some tenths between two runs while the machine is busy.`,

  runs: `Writing files side by side gains as much as a plain checkout waits for the disk: a lot on a slow disk, where 50,000 files took a quarter of the time,
little in memory, where two cores give 0.5 to 0.6 at best (docs/decisions/0012). An agent's first call is mostly Node starting (runner, agent) and the MCP
client being loaded; the agent started by hand has most of that as well.`,

  setup: `A worktree and a check move in a copy that was made before, when nobody waited. Begun faster than copies are made, the next one waits for its own:
the last row, which is what \`cp -a\` takes. Where the file system has no reflink (ext4 here) 300 MB are 15,000 files of 20 kB, and how long that takes depends on the disk and on
who else writes to it; before each turn what earlier turns wrote is flushed. The check's row holds the whole passage through the line (see line). npm of the whole run is called once, for the first worktree; the run
fails otherwise. The archives lie in the repository and compress well, so its npm ci is the cheapest there can be: no network, little to unpack.`,

  line: `Against a loop that does the same five commands of git and one shell, and looks at nothing. A merge here is seventeen: where branch, remote and line are,
what both commits are, whether it has landed before, what keeps the built commit from being collected (three to pack it, docs/decisions/0026), a clean checkout for the checks, whether the
person's own checkout is clean and what would be changed in it. From a daemon of 150 MB each takes 8 to 10 ms, about 3 of them the fork itself (a
quarter of the samples). The checks outlive a kill of the daemon, so they are a runner: 75 to 85 ms for \`true\`, most of it Node starting. Together
some 190 ms, which is the same for checks that take a minute; only checks that take no time at all show it. What the profile led to: each landing
wrote a letter to everybody who waits, five thousand of them in this row and a third of its time; now nobody gets a second one before the first was read.`,

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
| the token's hash, and on PostgreSQL four statements, for the surface and again for the door | 2 %; 4 of 9 statements | once, one statement: what it has proven is good for the call that follows |
| the task read by its id, then again; what it waits for and what waits for it | 2 of 5 statements on SQLite | none, one: both sides together |
| \`LIMIT ?\`: SQLite compiles such a statement again for every run | 55 µs for the notes, 96 µs for new events | 12 µs, 21 µs: \`LIMIT ? + 0\` |
| rows without a prototype, which V8 keeps as hash tables | 44 µs for a task | 28 µs: plain objects made from arrays |

Of a durable write, three statements that read back a task made just now, three calls for random bytes and the parsing of SAVEPOINT and
RELEASE for each job were taken out. Of a wait: each waiter read the log again for the event that woke it, and hundreds were answered
in one turn of the event loop; now each is handed its event, sixteen in a turn. Of the start: some 504 files of packages were opened
one by one. The fan-out can be above its limit: events of one commit are written to a reader together, where the bare server writes each alone.`,
}
