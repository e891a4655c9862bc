import { isMasonError } from '../state/errors.ts'
import type { RunEvent, RunStatus } from '../state/run-view.ts'
import { askPerson, type InputRequest, questionLines } from './ask.ts'
import { exitCodes } from './failure.ts'
import type { Followed, Gateway } from './gateway.ts'
import type { Renderer } from './render.ts'
import { oneLine, type Terminal } from './terminal.ts'

type Shown = { renderer: Renderer; terminal: Terminal; gateway: Pick<Gateway, 'howToAnswer'> }

/**
 * Shows a run until it has ended, or asks for input that nobody here can give; gives the exit code. When `cancelled`
 * aborts, the run is cancelled and followed to its end.
 */
export const follow = async (followed: Followed, shown: Shown, cancelled: AbortSignal): Promise<number> => {
  const { renderer, terminal } = shown
  const over = new AbortController()
  const cancel = (): void => {
    renderer.note('cancelling … (Ctrl-C again quits at once)')
    followed.cancel('Ctrl-C').catch((error: unknown) => renderer.note(`cannot cancel: ${textOf(error)}`))
  }
  if (cancelled.aborted) cancel()
  cancelled.addEventListener('abort', cancel, { once: true })
  const questions = createQuestions(followed, shown)
  try {
    for await (const event of followed.events(over.signal)) {
      renderer.event(event)
      if (event.event === 'done') return codeOf(event.data.status)
      if (event.event === 'input_required' && !terminal.canAsk) {
        tellQuestion(followed, event.data, shown)
        return exitCodes.inputRequired
      }
      questions.see(event)
    }
    return exitCodes.failed
  } finally {
    cancelled.removeEventListener('abort', cancel)
    questions.close()
    over.abort()
    renderer.close()
  }
}

const textOf = (error: unknown): string => oneLine(error instanceof Error ? error.message : String(error))

const codeOf = (status: RunStatus): number => {
  if (status === 'completed') return exitCodes.done
  return status === 'cancelled' ? exitCodes.cancelled : exitCodes.failed
}

const tellQuestion = ({ run }: Followed, request: InputRequest, { renderer, gateway }: Shown): void => {
  for (const line of ['the run waits for an answer:', ...questionLines(request)]) renderer.note(line)
  renderer.note(`to answer: ${gateway.howToAnswer(run.id, request.id)}`)
}

/** Asks each open question once, beside the events; one that is answered elsewhere is taken back. */
const createQuestions = (followed: Followed, { renderer, terminal }: Shown) => {
  const asked = new Set<string>()
  let open: AbortController | null = null

  const ask = async (request: InputRequest, signal: AbortSignal): Promise<void> => {
    for (;;) {
      renderer.pause()
      const answer = await askPerson(request, terminal, signal)
      try {
        return await followed.answer(request.id, answer)
      } catch (error) {
        if (!isMasonError(error, 'invalid_request')) throw error
        renderer.note(textOf(error))
      }
    }
  }
  const close = (): void => {
    open?.abort()
    open = null
  }
  return {
    see(event: RunEvent): void {
      if (event.event === 'status' && event.data.status !== 'input_required') close()
      if (event.event !== 'input_required' || asked.has(event.data.id)) return
      asked.add(event.data.id)
      const asking = new AbortController()
      open = asking
      ask(event.data, asking.signal).catch((error: unknown) => {
        if (!asking.signal.aborted) renderer.note(textOf(error))
      })
    },
    close,
  }
}
