/** The link of one node to all servers of the store, through this process: it can be reset, held, made to lose bytes, or to bring them late. */
import { once } from 'node:events'
import { createConnection, createServer, type Socket } from 'node:net'
import { createCutter } from '../redis/resp.js'

/**
 * - `reset`: both ends see a reset immediately;
 * - `hold`: nothing passes, and everything does afterwards;
 * - `swallow`: bytes are lost and neither end notices until the cut is over: a dead link without a reset;
 * - `late`: the node sees a reset immediately, and the bytes it had sent reach the store afterwards.
 */
export type Cut = 'reset' | 'hold' | 'swallow' | 'late'

export interface Link {
  /** Where the node reaches each server, in their order. */
  readonly ports: readonly number[]
  /** Begins a cut; `restore` ends it. */
  cut(how: Cut): void
  restore(): void
  /**
   * Calls `dies` at the `nth` command from now on: before the store receives it, or, if `isRun`, after the store has
   * replied and before the reply is read.
   */
  atCommand(nth: number, isRun: boolean, dies: () => void): void
  close(): Promise<void>
}

/** How long what a node sends is kept back before a `late` cut tells it. */
const KEPT_BACK_MS = 50

interface Pair {
  near: Socket
  far: Socket
  /** Whether it has lost bytes, so that nothing after them makes sense. */
  isSpoilt: boolean
  late: Buffer[]
}

/** A link on free ports to the servers on `stores`. */
export async function startLink(stores: readonly number[]): Promise<Link> {
  const pairs = new Set<Pair>()
  let state: Cut | 'whole' = 'whole'
  let fuse: { left: number; isRun: boolean; dies: () => void } | undefined
  const servers = stores.map((port) => createServer((near) => serve(near, port)).listen(0, '127.0.0.1'))
  await Promise.all(servers.map((server) => once(server, 'listening')))

  function end(pair: Pair) {
    pair.near.destroy()
    if (pair.late.length === 0) pair.far.destroy()
  }

  function serve(near: Socket, port: number) {
    const far = createConnection(port, '127.0.0.1')
    const pair: Pair = { near, far, isSpoilt: false, late: [] }
    pairs.add(pair)
    for (const socket of [near, far]) {
      socket.setNoDelay(true)
      socket.on('error', () => {})
      if (state === 'hold') socket.pause()
    }
    near.once('close', () => end(pair))
    far.once('close', () => {
      near.destroy()
      pairs.delete(pair)
    })
    let burnt: (() => void) | undefined

    near.on(
      'data',
      createCutter((command) => {
        if (state === 'swallow') {
          pair.isSpoilt = true
          return
        }
        if (state === 'late' && !pair.isSpoilt) return void pair.late.push(command)
        if (pair.isSpoilt || burnt) return
        if (fuse && --fuse.left <= 0) {
          const { isRun, dies } = fuse
          fuse = undefined
          burnt = () => {
            dies()
            end(pair)
          }
          if (!isRun) return burnt()
        }
        far.write(command)
      }),
    )
    far.on('data', (chunk: Buffer) => {
      if (burnt) return burnt()
      if (state === 'swallow') pair.isSpoilt = true
      if (!pair.isSpoilt) near.write(chunk)
    })
  }

  return {
    ports: servers.map((server) => (server.address() as { port: number }).port),
    cut(how) {
      state = how === 'reset' ? 'whole' : how
      if (how === 'reset') for (const pair of pairs) end(pair)
      if (how === 'hold') for (const { near, far } of pairs) for (const socket of [near, far]) socket.pause()
      if (how !== 'late') return
      const cut = [...pairs]
      setTimeout(() => {
        // New connections are served.
        if (state === 'late') state = 'whole'
        for (const { near } of cut) near.destroy()
      }, KEPT_BACK_MS)
    },
    restore() {
      state = 'whole'
      for (const pair of [...pairs]) {
        for (const socket of [pair.near, pair.far]) socket.resume()
        if (pair.isSpoilt) end(pair)
        if (pair.late.length === 0) continue
        pair.near.destroy()
        for (const command of pair.late.splice(0)) pair.far.write(command)
        pair.far.end()
      }
    },
    atCommand(nth, isRun, dies) {
      fuse = { left: nth, isRun, dies }
    },
    async close() {
      for (const server of servers) server.close()
      for (const { near, far } of pairs) {
        near.destroy()
        far.destroy()
      }
      await Promise.all(servers.map((server) => once(server, 'close')))
    },
  }
}
