//! One set of message macros over defmt (microcontrollers) and log (Linux).

#[cfg(all(feature = "defmt", feature = "log"))]
compile_error!("choose one of the features `defmt` and `log`: a message goes to one place");

macro_rules! message {
    ($level:ident, $($argument:tt)*) => {{
        #[cfg(feature = "defmt")]
        ::defmt::$level!($($argument)*);
        #[cfg(feature = "log")]
        ::log::$level!($($argument)*);
        #[cfg(not(any(feature = "defmt", feature = "log")))]
        let _ = format_args!($($argument)*);
    }};
}

macro_rules! debug {
    ($($argument:tt)*) => { message!(debug, $($argument)*) };
}

macro_rules! info {
    ($($argument:tt)*) => { message!(info, $($argument)*) };
}

macro_rules! warn {
    ($($argument:tt)*) => { message!(warn, $($argument)*) };
}

macro_rules! error {
    ($($argument:tt)*) => { message!(error, $($argument)*) };
}
