// The conformance tool cannot send a bearer header. This stands in front of the server and adds it, and nothing else:
// Host and Origin are changed only where they name this very proxy, so that foreign ones arrive as they were sent.
import { createServer, request } from 'node:http'

export async function startProxy(target, token) {
  const { hostname, port } = new URL(target)
  const own = () => `127.0.0.1:${server.address().port}`
  const server = createServer((incoming, outgoing) => {
    const headers = { ...incoming.headers, authorization: `Bearer ${token}` }
    const there = `${hostname}:${port}`
    if (headers.host === own()) headers.host = there
    if (headers.origin === `http://${own()}`) headers.origin = `http://${there}`
    const onward = request({ hostname, port, path: incoming.url, method: incoming.method, headers }, (answer) => {
      outgoing.writeHead(answer.statusCode, answer.headers)
      answer.pipe(outgoing)
    })
    onward.on('error', () => outgoing.destroy())
    // A client that hangs up must be felt at the other end: cancellation is part of what is judged.
    outgoing.on('close', () => onward.destroy())
    incoming.pipe(onward)
  })
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://${own()}`,
    close() {
      server.close()
      server.closeAllConnections()
    },
  }
}
