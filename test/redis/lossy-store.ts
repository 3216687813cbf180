/** A proxy before a store that runs commands and loses, holds or repeats their replies, with the connection they came by. */
import { once } from 'node:events'
import { createConnection, createServer, type Socket } from 'node:net'
import { createPlan, type Met, type Plan } from './lossy-plan.js'
import { createCutter, textFrom } from './resp.js'

export interface LossyStore {
  /** Where clients connect instead of to the store, and to each of several servers in their order. */
  readonly port: number
  readonly ports: readonly number[]
  readonly plan: Plan
  /** Resets every connection: sent commands may have run. */
  cut(): void
  close(): Promise<void>
}

/** What becomes of the reply to a command that was sent to the store. */
type Expected = 'pass' | 'swallow' | Met

/**
 * Starts a proxy on a free port for each server of the store. Commands of a connection with subscriptions are not
 * matched: replies and messages cannot be distinguished there.
 */
export async function startLossyStore(...stores: number[]): Promise<LossyStore> {
  const { plan, met, wait } = createPlan()
  const open = new Set<Socket>()
  const servers = stores.map((port) => createServer((near) => serve(near, port)).listen(0, '127.0.0.1'))
  await Promise.all(servers.map((server) => once(server, 'listening')))
  const ports = servers.map((server) => (server.address() as { port: number }).port)

  function keep(socket: Socket) {
    open.add(socket)
    socket.setNoDelay(true)
    socket.on('error', () => {})
    socket.once('close', () => open.delete(socket))
  }

  function serve(near: Socket, port: number) {
    const far = createConnection(port, '127.0.0.1')
    keep(near)
    keep(far)
    near.once('close', () => !isDetached && far.destroy())
    far.once('close', () => near.destroy())
    const expected: Expected[] = []
    /** Replies after a held one. */
    let held: Buffer[] | undefined
    let isSubscribed = false
    /** The caller has disconnected, while one of its commands is in transit. */
    let isDetached = false
    let lateReplies: (() => void)[] = []

    const answer = (reply: Buffer) => {
      if (isDetached) return lateReplies.shift()?.()
      const next = expected.shift() ?? 'pass'
      if (next === 'swallow') return
      if (next === 'pass') return held ? held.push(reply) : near.write(reply)
      next.happened()
      if (next.fault === 'lost') return near.destroy()
      if (next.fault === 'repeated') return held ? held.push(reply) : near.write(reply)
      if (held) return held.push(reply)
      held = [reply]
      wait(async () => {
        for (const each of held ?? []) near.write(each)
        held = undefined
      })
    }

    const detach = (command: Buffer, { happened }: Met) => {
      isDetached = true
      lateReplies = expected.splice(0).map(() => () => {})
      near.destroy()
      wait(
        () =>
          new Promise((resolve) => {
            lateReplies.push(() => {
              far.destroy()
              resolve()
            })
            far.once('close', () => resolve())
            far.write(command)
          }),
      )
      happened()
    }

    const forward = (command: Buffer) => {
      if (isDetached) return
      const words = textFrom(command)
      isSubscribed ||= /^[sp]?subscribe$/i.test(words[0] ?? '')
      const found = isSubscribed ? undefined : met(words)
      if (found?.fault === 'unsent') {
        found.happened()
        return near.destroy()
      }
      if (found?.fault === 'late') return detach(command, found)
      expected.push(found ?? 'pass')
      far.write(command)
      if (found?.fault !== 'repeated') return
      expected.push('swallow')
      far.write(command)
    }

    near.on('data', createCutter(forward))
    const cutReplies = createCutter(answer)
    far.on('data', (chunk: Buffer) => (isSubscribed ? near.write(chunk) : cutReplies(chunk)))
  }

  return {
    port: ports[0] as number,
    ports,
    plan,
    cut() {
      for (const socket of open) socket.destroy()
    },
    async close() {
      for (const server of servers) server.close()
      for (const socket of open) socket.destroy()
      await Promise.all(servers.map((server) => once(server, 'close')))
    },
  }
}
