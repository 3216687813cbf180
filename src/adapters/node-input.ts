/** Hands what a connection sends to Node's parser a head at a time. Serves `node-bounds.ts`. */
import type { Socket } from 'node:net'

const HEAD_END = '\r\n\r\n'
// Of the shortest heads that there are fourteen at once, and no more calls of the parser than that for a body that looks like heads.
const LEAST_BYTES = 256

/**
 * From now on what `socket`, which a Node server has just accepted, sends is parsed in slices that end with a head: a
 * parser cannot be stopped within what it is handed, and a socket hands over 64 KiB, a thousand requests and more. Once
 * it `isFull`, what still comes is thrown away.
 */
export function sliceInput(socket: Socket, isFull: () => boolean): void {
  // Node's own. While anybody else listens, it reads the socket by its events and in no other way.
  const [parse] = socket.listeners('data') as ((chunk: Buffer) => void)[]
  if (parse === undefined) return
  socket.off('data', parse)
  socket.on('data', (chunk: Buffer) => {
    for (let at = 0; at < chunk.length && !isFull() && !socket.destroyed; ) {
      if (socket.isPaused()) return void socket.unshift(chunk.subarray(at))
      const head = chunk.indexOf(HEAD_END, at + LEAST_BYTES - HEAD_END.length)
      const end = head < 0 ? chunk.length : head + HEAD_END.length
      parse(chunk.subarray(at, end))
      at = end
    }
  })
}
