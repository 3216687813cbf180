/** Asks for the administrator's key. */
import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { readmit } from './answers.js'
import { setKey } from './key.js'
import { forgetSamples } from './samples.js'

export function KeyForm({ wasRefused }: { wasRefused: boolean }): JSX.Element {
  const [given, setGiven] = useState('')
  const [remember, setRemember] = useState(false)
  const enter = (event: Event) => {
    event.preventDefault()
    forgetSamples()
    setKey(given, remember)
    readmit()
  }
  return (
    <form class="card key" onSubmit={enter}>
      <h1>{wasRefused ? 'The router refused' : 'A key is needed'}</h1>
      <p>
        It goes to the router alone, and stays in this page's memory: a reload asks for it again, unless it is kept.
        Where the host's own login lets you in, log in there and reload.
      </p>
      <label>
        The administrator's key, or your own
        <input
          type="password"
          autocomplete="current-password"
          required
          value={given}
          onInput={(event) => setGiven(event.currentTarget.value)}
        />
      </label>
      <label class="check">
        <input type="checkbox" checked={remember} onChange={(event) => setRemember(event.currentTarget.checked)} />
        keep it until this tab is closed
      </label>
      <button type="submit">Look</button>
    </form>
  )
}
