import { createServer, type ServerResponse } from 'node:http'

/** What node:http alone can do: answers with a text, or passes each POST to /publish on to every reader of /stream. */
const answer = process.env.BENCH_ANSWER ?? '{"ok":true}'
const frame = process.env.BENCH_FRAME ?? ''
const readers = new Set<ServerResponse>()

const server = createServer((request, response) => {
  if (request.method === 'GET' && request.url === '/stream') {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write('retry: 1000\n\n')
    readers.add(response)
    response.once('close', () => readers.delete(response))
    return
  }
  request.resume()
  request.on('end', () => {
    if (request.url === '/publish') for (const reader of readers) reader.write(frame)
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(answer) })
    response.end(answer)
  })
})
server.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${(server.address() as { port: number }).port}`))
