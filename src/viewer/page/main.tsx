/** Begins the page. */
import { render } from 'preact'
import { begin, readmit } from './answers.js'
import { App } from './app.js'
import { takeKey } from './key.js'
import { forgetSamples } from './samples.js'

takeKey()
begin()
// A link with a key, followed where the page is open already: before anybody looks at the address.
addEventListener('hashchange', () => {
  if (!takeKey()) return
  forgetSamples()
  readmit()
})
render(<App />, document.body)
