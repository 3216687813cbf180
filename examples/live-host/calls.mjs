/** Calls whose result somebody waits for: a correlator's promise, carried by a command and answered over the wire. */
import { userStream } from 'relayscope'

export function createCalls({ rpc, dispatcher, connections, history }) {
  async function record(kind, { user_id, client_id, instance_id }, correlation_id, payload) {
    const stream = userStream(user_id, 'clients', client_id, 'commands')
    const message_id = `${correlation_id}-${kind}`
    await history.append({ message_id, stream, kind, user_id, client_id, instance_id, payload })
  }

  return {
    /**
     * What `action` returns at the client. Runs at most once: a client that is not there now is not waited for.
     * Rejects when it fails, when it is not there, and after `timeoutMs`.
     */
    async call({ user_id, client_id }, action, payload, timeoutMs) {
      const instance_id = await connections.currentInstance({ user_id, client_id })
      if (instance_id === null) throw new Error(`${client_id} is not connected`)
      const { correlation_id, result } = await rpc.open({ action, user_id, client_id, instance_id, timeoutMs })
      const command = { command_id: correlation_id, user_id, client_id, action, payload }
      await record('command', { user_id, client_id, instance_id }, correlation_id, { action, payload })
      const status = await dispatcher.dispatch({
        ...command,
        deadlineMs: timeoutMs,
        maxAttempts: 1,
        requireWaiter: true,
      })
      if (status.admission.state === 'rejected')
        await rpc.settle(correlation_id, { ok: false, error: new Error(`${client_id} has no open mailbox`) })
      return result
    },

    /** The client's reply: ends the call and its command. Whether it was the one that counted. */
    async reply({ user_id, client_id, instance_id, correlation_id, outcome }) {
      const from = { user_id, client_id, instance_id }
      const counted = await rpc.settle(correlation_id, { ...outcome, from })
      if (!counted) return false
      const end = outcome.ok ? { state: 'resulted' } : { state: 'failed', reason: 'handler_error' }
      await dispatcher.settle({ user_id, client_id, command_id: correlation_id, instance_id, ...end })
      await record('result', from, correlation_id, outcome)
      return true
    },
  }
}
