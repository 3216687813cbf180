/** Begins the page. */
import { render } from 'preact'
import { begin } from './answers.js'
import { App } from './app.js'
import { takeKey } from './key.js'

takeKey()
begin()
render(<App />, document.body)
