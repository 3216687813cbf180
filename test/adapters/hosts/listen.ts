/** Opens a Node server on a free loopback port and tells the parent process which. */
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'

export function tell(server: Server): void {
  process.stdout.write(`${JSON.stringify({ port: (server.address() as AddressInfo).port })}\n`)
}

export function listen(server: Server): void {
  server.listen(0, '127.0.0.1', () => tell(server))
}
