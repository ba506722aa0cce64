//! Many threads decode, one thread receives, in order.
use std::{
    collections::BTreeMap,
    ops::ControlFlow,
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
};

use crate::{
    Error,
    block::Block,
    feed::{Feed, Piece},
    plan::Plan,
};

/// No new piece is taken while the rows of those on their way may take more memory than this.
const AHEAD: usize = 24 << 20;

/// Some rows, encoded in one of several ways.
pub(crate) trait Part: Default + Send {
    /// Forgets its rows for those of a piece.
    fn decode(
        &mut self,
        piece: &Piece<'_>,
        buffer: &[u8],
        plan: &Plan,
        used: &[usize],
    ) -> Result<(), Error>;
}

impl Part for Block {
    fn decode(
        &mut self,
        piece: &Piece<'_>,
        buffer: &[u8],
        plan: &Plan,
        used: &[usize],
    ) -> Result<(), Error> {
        piece.decode(buffer, plan, used, self)
    }
}

/// Hands all parts of `feed` to `each`, in order, until it breaks.
pub(crate) fn run<P: Part>(
    feed: Feed<'_>,
    plan: &Plan,
    threads: usize,
    each: &mut dyn FnMut(&P) -> ControlFlow<()>,
) -> Result<(), Error> {
    let used = plan.used();
    let desk = Desk {
        feed: Mutex::new((feed, 0)),
        shelf: Mutex::new(Shelf::default()),
        changed: Condvar::new(),
    };
    std::thread::scope(|scope| {
        // Whatever happens here, also a panic in `each`, sends the others home.
        let _close = Close(&desk);
        for _ in 0..threads {
            scope.spawn(|| {
                let _close = CloseOnPanic(&desk);
                desk.work(plan, &used);
            });
        }
        let mut number = 0;
        while let Some(block) = desk.take(number) {
            let block = block?;
            if each(&block).is_break() {
                break;
            }
            lock(&desk.shelf).spare.push(block);
            number += 1;
        }
        Ok(())
    })
}

struct Desk<'a, P> {
    feed: Mutex<(Feed<'a>, u64)>,
    shelf: Mutex<Shelf<P>>,
    changed: Condvar,
}

/// Finished blocks that wait for their turn.
struct Shelf<P> {
    blocks: BTreeMap<u64, (Result<P, Error>, usize)>,
    /// What all blocks on their way may cost, finished or not.
    cost: usize,
    /// How many blocks there are, once that is known.
    count: Option<u64>,
    closed: bool,
    /// Blocks that were handed out and come back: fresh memory is slow.
    spare: Vec<P>,
}

impl<P> Default for Shelf<P> {
    fn default() -> Self {
        let (blocks, spare) = (BTreeMap::new(), Vec::new());
        Shelf { blocks, cost: 0, count: None, closed: false, spare }
    }
}

impl<P: Part> Desk<'_, P> {
    fn work(&self, plan: &Plan, used: &[usize]) {
        let mut buffer = Vec::new();
        loop {
            let mut shelf = lock(&self.shelf);
            while shelf.cost > AHEAD && !shelf.closed {
                shelf = self.changed.wait(shelf).unwrap_or_else(PoisonError::into_inner);
            }
            if shelf.closed || shelf.count.is_some() {
                return;
            }
            drop(shelf);
            let mut feed = lock(&self.feed);
            if lock(&self.shelf).count.is_some() {
                return;
            }
            let number = feed.1;
            feed.1 += 1;
            let piece = match feed.0.next(&mut buffer) {
                Ok(Some(piece)) => piece,
                end => {
                    // Nothing comes after the end, nor after an error.
                    let mut shelf = lock(&self.shelf);
                    shelf.count = Some(number + u64::from(end.is_err()));
                    if let Err(error) = end {
                        shelf.blocks.insert(number, (Err(error), 0));
                    }
                    self.changed.notify_all();
                    return;
                }
            };
            lock(&self.shelf).cost += piece.cost;
            drop(feed);
            let mut block = lock(&self.shelf).spare.pop().unwrap_or_default();
            let block = block.decode(&piece, &buffer, plan, used).map(|()| block);
            lock(&self.shelf).blocks.insert(number, (block, piece.cost));
            self.changed.notify_all();
        }
    }

    /// Waits for a block; `None` after the last.
    fn take(&self, number: u64) -> Option<Result<P, Error>> {
        let mut shelf = lock(&self.shelf);
        loop {
            if let Some((block, cost)) = shelf.blocks.remove(&number) {
                shelf.cost -= cost;
                self.changed.notify_all();
                return Some(block);
            }
            if shelf.closed || shelf.count == Some(number) {
                return None;
            }
            shelf = self.changed.wait(shelf).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn close(&self) {
        lock(&self.shelf).closed = true;
        self.changed.notify_all();
    }
}

struct Close<'a, 'b, P: Part>(&'a Desk<'b, P>);

impl<P: Part> Drop for Close<'_, '_, P> {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// A thread that panics would leave the others waiting for its block.
struct CloseOnPanic<'a, 'b, P: Part>(&'a Desk<'b, P>);

impl<P: Part> Drop for CloseOnPanic<'_, '_, P> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.close();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
