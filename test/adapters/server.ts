/** Serves a Node listener for the length of a test. */
import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { onTestFinished } from 'vitest'

/** Listens on a free loopback port, until the test ends; `server` is the listener's, or one made beforehand. */
export async function serve(listener: RequestListener | Server): Promise<number> {
  const server = typeof listener === 'function' ? createServer(listener) : listener
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  })
  return (server.address() as AddressInfo).port
}
